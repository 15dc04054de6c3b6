//! Cuts the text of a `$filter` into tokens, one at a time.
//!
//! Operators are words like property names; which of the two a word is depends on where it stands, so a property may be
//! named `eq`. Tokens are made only when asked for, because the first thing wrong in the text decides the error.

use crate::filter::Op;
use crate::literal::{Prefix, parse_number};
use partita_model::{ServiceError, Value};
use std::fmt;

#[derive(Debug, PartialEq)]
pub(crate) enum Token<'a> {
    Open,
    Close,
    Literal(Value),
    /// A name or an operator.
    Word(&'a str),
    /// A name with its opening parenthesis behind it, not read yet.
    Function(&'a str),
}

/// The words that may stand between or before operands.
pub(crate) fn is_arithmetic(word: &str) -> bool {
    matches!(word, "add" | "sub" | "mul" | "div" | "mod")
}

fn is_operator(word: &str) -> bool {
    matches!(word, "and" | "or" | "not") || is_arithmetic(word) || Op::parse(word).is_some()
}

pub(crate) struct Lexer<'a> {
    text: &'a str,
    /// Where the next token or the white space before it starts.
    at: usize,
    /// Where the last token starts.
    token_at: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0, token_at: 0 }
    }

    /// The error for the last token, when it stands where an operator should.
    pub(crate) fn not_an_operator(&self) -> ServiceError {
        ServiceError::FilterSyntax { position: self.position(self.at).to_string(), text: self.text.to_owned() }
    }

    /// The error for the last token, when something else is wrong with it.
    pub(crate) fn invalid(&self, what: impl fmt::Display) -> ServiceError {
        let position = self.position(self.token_at);
        ServiceError::FilterInvalid { detail: format!("\nThe filter at position {position}: {what}.") }
    }

    /// .NET counts UTF-16 units.
    fn position(&self, at: usize) -> usize {
        self.text[..at].encode_utf16().count()
    }

    /// The next token, or `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Token<'a>>, ServiceError> {
        self.take_while(|c| c.is_ascii_whitespace());
        self.token_at = self.at;
        let Some(first) = self.peek() else { return Ok(None) };
        let token = match first {
            '(' | ')' => {
                self.at += 1;
                if first == '(' { Token::Open } else { Token::Close }
            }
            '\'' => Token::Literal(Value::String(self.quoted()?)),
            '0'..='9' | '-' => Token::Literal(self.number()?),
            _ if first == '_' || first.is_alphabetic() => self.word()?,
            _ => return Err(self.invalid(format_args!("{first:?} cannot begin anything"))),
        };
        Ok(Some(token))
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = &self.text[self.at..];
        let taken = &rest[..rest.find(|c| !wanted(c)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    /// Text between quotes, of which a doubled one stands for itself.
    fn quoted(&mut self) -> Result<String, ServiceError> {
        let mut content = String::new();
        loop {
            self.at += 1;
            content.push_str(self.take_while(|c| c != '\''));
            if self.peek().is_none() {
                return Err(self.invalid("a quote is not closed"));
            }
            self.at += 1;
            if self.peek() != Some('\'') {
                return Ok(content);
            }
            content.push('\'');
        }
    }

    fn number(&mut self) -> Result<Value, ServiceError> {
        let start = self.at;
        self.at += 1;
        loop {
            self.take_while(|c| c == '.' || continues_word(c));
            // A sign belongs to the number only as part of its exponent.
            let signed = matches!(self.peek(), Some('+' | '-')) && self.text[start..self.at].ends_with(['e', 'E']);
            if !signed {
                let number = parse_number(&self.text[start..self.at]);
                return number.ok_or_else(|| self.invalid("this is not a number, or not one that fits"));
            }
            self.at += 1;
        }
    }

    fn word(&mut self) -> Result<Token<'a>, ServiceError> {
        let word = self.take_while(continues_word);
        let next = self.peek();
        Ok(match word {
            "true" => Token::Literal(Value::Boolean(true)),
            "false" => Token::Literal(Value::Boolean(false)),
            "NaN" => Token::Literal(Value::Double(f64::NAN)),
            "INF" => Token::Literal(Value::Double(f64::INFINITY)),
            "null" => return Err(self.invalid("nothing is ever null, since a property that is null is not stored")),
            _ if next == Some('\'') && !is_operator(word) => {
                let unknown = || self.invalid("only guid, datetime, X and binary stand before quotes");
                let prefix = Prefix::parse(word).ok_or_else(unknown)?;
                let value = prefix.value(&self.quoted()?);
                Token::Literal(value.ok_or_else(|| self.invalid("the text in quotes is not of the type before them"))?)
            }
            _ if next == Some('(') && !is_operator(word) => Token::Function(word),
            _ => Token::Word(word),
        })
    }
}

/// Letters, digits and connectors; beyond ASCII more than an identifier may have, since a name that cannot exist is
/// merely missing from every entity.
fn continues_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric() || !(c.is_ascii() || c.is_whitespace() || c.is_control())
}

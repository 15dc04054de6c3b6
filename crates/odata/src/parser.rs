//! Turns the text of a `$filter` into a [`Filter`].
//!
//! Operator precedence with two stacks instead of recursive descent: the text comes from outside, and its nesting must
//! not decide how much of the call stack is used. From tight to loose: parentheses, comparisons, `not`, `and`, `or`.
//!
//! ```text
//! filter  = operand { operator operand }          operator = eq ne gt ge lt le and or
//! operand = { "(" | "not" } (literal | name) { ")" }
//! ```
//!
//! What the operators make of their operands is checked when they are applied: a comparison wants a name and a literal,
//! the others want conditions.

use crate::evaluate::compare;
use crate::filter::{Filter, Op};
use crate::lexer::{Lexer, Token, is_arithmetic};
use partita_model::limits::{FILTER_COMPARISONS_MAX, FILTER_DEPTH_MAX};
use partita_model::{ServiceError, Value};

impl Filter {
    /// Reads a filter; `None` if there is nothing but white space.
    pub fn parse(text: &str) -> Result<Option<Filter>, ServiceError> {
        if text.trim_ascii().is_empty() {
            return Ok(None);
        }
        let mut parser =
            Parser { lexer: Lexer::new(text), operands: Vec::new(), pending: Vec::new(), depth: 0, comparisons: 0 };
        loop {
            parser.operand()?;
            if !parser.operator()? {
                return parser.finish().map(Some);
            }
        }
    }
}

enum Operand {
    Literal(Value),
    Property(String),
    Condition(Filter),
}

/// What waits for its right side.
#[derive(Clone, Copy, PartialEq)]
enum Pending {
    Open,
    Or,
    And,
    Not,
    Compare(Op),
}

impl Pending {
    /// Whether this takes the operand between itself and `next` to its right.
    fn precedes(self, next: Pending) -> bool {
        let rank = |pending| match pending {
            Pending::Open => 0,
            Pending::Or => 1,
            Pending::And => 2,
            Pending::Not => 3,
            Pending::Compare(_) => 4,
        };
        self != Pending::Open && rank(self) >= rank(next)
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    operands: Vec<Operand>,
    pending: Vec<Pending>,
    /// How many of `pending` are `Open` or `Not`.
    depth: usize,
    comparisons: usize,
}

impl Parser<'_> {
    fn operand(&mut self) -> Result<(), ServiceError> {
        loop {
            let operand = match self.lexer.next()? {
                Some(Token::Open) => {
                    self.nest(Pending::Open)?;
                    continue;
                }
                Some(Token::Word("not")) if matches!(self.pending.last(), Some(Pending::Compare(_))) => {
                    return Err(self.lexer.invalid("a comparison needs a value, and not is none"));
                }
                Some(Token::Word("not")) => {
                    self.nest(Pending::Not)?;
                    continue;
                }
                Some(Token::Word(name)) => Operand::Property(name.to_owned()),
                Some(Token::Literal(value)) => Operand::Literal(value),
                Some(Token::Function(_)) => return Err(ServiceError::NotImplemented),
                Some(Token::Close) | None => {
                    return Err(self.lexer.invalid("a property, a value or a condition is missing"));
                }
            };
            self.operands.push(operand);
            return Ok(());
        }
    }

    fn nest(&mut self, pending: Pending) -> Result<(), ServiceError> {
        self.depth += 1;
        if self.depth > FILTER_DEPTH_MAX {
            return Err(self.lexer.invalid(format_args!("it is nested deeper than {FILTER_DEPTH_MAX} levels")));
        }
        self.pending.push(pending);
        Ok(())
    }

    /// Reads up to and including an operator with two sides; `false` if the text ends instead.
    fn operator(&mut self) -> Result<bool, ServiceError> {
        loop {
            let operator = match self.lexer.next()? {
                None => return Ok(false),
                Some(Token::Close) => {
                    self.apply_preceding(Pending::Or)?;
                    if self.pending.pop().is_none() {
                        return Err(self.lexer.not_an_operator());
                    }
                    self.depth -= 1;
                    continue;
                }
                Some(Token::Word("and")) => Pending::And,
                Some(Token::Word("or")) => Pending::Or,
                Some(Token::Word(word)) if is_arithmetic(word) => return Err(ServiceError::NotImplemented),
                Some(Token::Word(word)) => {
                    Pending::Compare(Op::parse(word).ok_or_else(|| self.lexer.not_an_operator())?)
                }
                Some(_) => return Err(self.lexer.not_an_operator()),
            };
            self.apply_preceding(operator)?;
            self.pending.push(operator);
            return Ok(true);
        }
    }

    fn finish(mut self) -> Result<Filter, ServiceError> {
        self.apply_preceding(Pending::Or)?;
        if !self.pending.is_empty() {
            return Err(self.lexer.invalid("a parenthesis is not closed"));
        }
        self.condition()
    }

    fn apply_preceding(&mut self, next: Pending) -> Result<(), ServiceError> {
        while let Some(pending) = self.pending.pop_if(|pending| pending.precedes(next)) {
            let condition = match pending {
                Pending::Open => unreachable!("a parenthesis precedes nothing"),
                Pending::Compare(op) => {
                    let right = self.pop();
                    let left = self.pop();
                    self.comparison(left, op, right)?
                }
                Pending::Not => {
                    self.depth -= 1;
                    Filter::Not(Box::new(self.condition()?))
                }
                Pending::And => {
                    let right = self.condition()?;
                    let mut terms = terms_of_and(self.condition()?);
                    terms.append(&mut terms_of_and(right));
                    Filter::And(terms)
                }
                Pending::Or => {
                    let right = self.condition()?;
                    let mut terms = terms_of_or(self.condition()?);
                    terms.append(&mut terms_of_or(right));
                    Filter::Or(terms)
                }
            };
            self.operands.push(Operand::Condition(condition));
        }
        Ok(())
    }

    fn pop(&mut self) -> Operand {
        self.operands.pop().expect("an operator is applied only after its operands were read")
    }

    fn comparison(&mut self, left: Operand, op: Op, right: Operand) -> Result<Filter, ServiceError> {
        self.count()?;
        Ok(match (left, right) {
            (Operand::Property(property), Operand::Literal(literal)) => Filter::Compare { property, op, literal },
            (Operand::Literal(literal), Operand::Property(property)) => {
                Filter::Compare { property, op: op.flipped(), literal }
            }
            (Operand::Literal(left), Operand::Literal(right)) => {
                Filter::Boolean(compare(left.as_ref(), op, right.as_ref()))
            }
            _ => return Err(self.lexer.invalid("before this, a comparison is not of a property and a value")),
        })
    }

    /// The last operand where a condition is wanted.
    fn condition(&mut self) -> Result<Filter, ServiceError> {
        let condition = match self.pop() {
            Operand::Condition(filter) => return Ok(filter),
            Operand::Property(name) => Filter::Property(name),
            Operand::Literal(Value::Boolean(value)) => Filter::Boolean(value),
            Operand::Literal(_) => return Err(ServiceError::FilterNotBoolean),
        };
        self.count()?;
        Ok(condition)
    }

    fn count(&mut self) -> Result<(), ServiceError> {
        self.comparisons += 1;
        if self.comparisons > FILTER_COMPARISONS_MAX {
            return Err(self.lexer.invalid(format_args!("it has more than {FILTER_COMPARISONS_MAX} comparisons")));
        }
        Ok(())
    }
}

fn terms_of_and(filter: Filter) -> Vec<Filter> {
    match filter {
        Filter::And(terms) => terms,
        other => vec![other],
    }
}

fn terms_of_or(filter: Filter) -> Vec<Filter> {
    match filter {
        Filter::Or(terms) => terms,
        other => vec![other],
    }
}

#[cfg(test)]
mod tests;

//! What a `$filter` says, as a tree, and its canonical text.
//!
//! `And` and `Or` hold any number of terms and never one of their own kind, so a chain of 2,000 `or` is one node and
//! the tree is as deep as the text is nested: about two levels for each parenthesis, since `a or b and (...)` opens an
//! `or` and an `and`. Everything that walks the tree may therefore recurse; the parser, which sees text of any shape,
//! does not. A thousand levels leave about a kilobyte of stack for each, and unoptimised iterators take that alone, so
//! the walks are plain loops.

use crate::literal::{Literal, same};
use partita_model::Value;
use std::cmp::Ordering;
use std::fmt;

/// A condition on an entity.
pub enum Filter {
    /// Every term holds.
    And(Vec<Filter>),
    /// At least one term holds.
    Or(Vec<Filter>),
    /// The term does not hold.
    Not(Box<Filter>),
    /// The property is there and compares so with the literal.
    Compare {
        /// Case-sensitive name of the property.
        property: String,
        /// Read from left to right with the property on the left, whichever side it was on in the text.
        op: Op,
        /// What the property is compared with.
        literal: Value,
    },
    /// Always, or never.
    Boolean(bool),
    /// The property is there and is the Boolean `true`.
    Property(String),
}

impl Filter {
    /// How many comparisons the filter makes. Bare properties and constants count as one each.
    pub fn comparisons(&self) -> usize {
        match self {
            Filter::And(terms) | Filter::Or(terms) => {
                let mut count = 0;
                for term in terms {
                    count += term.comparisons();
                }
                count
            }
            Filter::Not(term) => term.comparisons(),
            Filter::Compare { .. } | Filter::Boolean(_) | Filter::Property(_) => 1,
        }
    }

    fn print(&self, f: &mut fmt::Formatter<'_>, inside: Binding) -> fmt::Result {
        let (terms, word, binding) = match self {
            Filter::And(terms) if terms.is_empty() => return f.write_str("true"),
            Filter::Or(terms) if terms.is_empty() => return f.write_str("false"),
            Filter::And(terms) => (terms, " and ", Binding::And),
            Filter::Or(terms) => (terms, " or ", Binding::Or),
            Filter::Not(term) => {
                f.write_str("not ")?;
                return term.print(f, Binding::Not);
            }
            Filter::Compare { property, op, literal } => return print_comparison(f, property, *op, literal),
            Filter::Boolean(value) => return f.write_str(if *value { "true" } else { "false" }),
            Filter::Property(name) => return f.write_str(name),
        };
        let parentheses = binding < inside;
        if parentheses {
            f.write_str("(")?;
        }
        for (at, term) in terms.iter().enumerate() {
            if at > 0 {
                f.write_str(word)?;
            }
            term.print(f, binding)?;
        }
        if parentheses {
            f.write_str(")")?;
        }
        Ok(())
    }
}

fn print_comparison(f: &mut fmt::Formatter<'_>, property: &str, op: Op, literal: &Value) -> fmt::Result {
    write!(f, "{property} {} {}", op.name(), Literal(literal))
}

impl Clone for Filter {
    fn clone(&self) -> Filter {
        match self {
            Filter::And(terms) => Filter::And(clone_each(terms)),
            Filter::Or(terms) => Filter::Or(clone_each(terms)),
            Filter::Not(term) => Filter::Not(Box::new(Filter::clone(term))),
            Filter::Compare { property, op, literal } => {
                Filter::Compare { property: property.clone(), op: *op, literal: literal.clone() }
            }
            Filter::Boolean(value) => Filter::Boolean(*value),
            Filter::Property(name) => Filter::Property(name.clone()),
        }
    }
}

fn clone_each(terms: &[Filter]) -> Vec<Filter> {
    let mut copies = Vec::with_capacity(terms.len());
    for term in terms {
        copies.push(term.clone());
    }
    copies
}

/// How tightly the words around a term hold it; a looser term needs parentheses.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Binding {
    Or,
    And,
    Not,
}

/// The canonical text, with no parenthesis that is not needed, so that whatever was read can be read again: printing
/// never nests deeper than the text it came from.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.print(f, Binding::Or)
    }
}

/// As [`fmt::Display`]. The derived form is unreadable and takes so much stack for each level that a deep filter would
/// overflow it.
impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Equality of the texts: a literal `NaN` is equal to itself, and `0.0` is not `-0.0`.
impl PartialEq for Filter {
    fn eq(&self, other: &Filter) -> bool {
        match (self, other) {
            (Filter::And(a), Filter::And(b)) | (Filter::Or(a), Filter::Or(b)) => a == b,
            (Filter::Not(a), Filter::Not(b)) => a == b,
            (
                Filter::Compare { property: a, op: a_op, literal: a_literal },
                Filter::Compare { property: b, op: b_op, literal: b_literal },
            ) => a == b && a_op == b_op && same(a_literal, b_literal),
            (Filter::Boolean(a), Filter::Boolean(b)) => a == b,
            (Filter::Property(a), Filter::Property(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Filter {}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each variant is the operator of its name")]
pub enum Op {
    Eq,
    Ne,
    Gt,
    Ge,
    Lt,
    Le,
}

impl Op {
    /// All operators.
    pub const ALL: [Op; 6] = [Op::Eq, Op::Ne, Op::Gt, Op::Ge, Op::Lt, Op::Le];

    /// The word in a filter.
    pub fn name(self) -> &'static str {
        match self {
            Op::Eq => "eq",
            Op::Ne => "ne",
            Op::Gt => "gt",
            Op::Ge => "ge",
            Op::Lt => "lt",
            Op::Le => "le",
        }
    }

    /// The operator of that word.
    pub fn parse(word: &str) -> Option<Op> {
        Op::ALL.into_iter().find(|op| op.name() == word)
    }

    /// The operator that says the same with the sides exchanged.
    pub fn flipped(self) -> Op {
        match self {
            Op::Eq | Op::Ne => self,
            Op::Gt => Op::Lt,
            Op::Ge => Op::Le,
            Op::Lt => Op::Gt,
            Op::Le => Op::Ge,
        }
    }

    /// Whether the operator holds between two values of that order; `None` is what NaN has with everything.
    pub(crate) fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            Op::Eq => order == Some(Ordering::Equal),
            Op::Ne => order != Some(Ordering::Equal),
            Op::Gt => order == Some(Ordering::Greater),
            Op::Ge => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
            Op::Lt => order == Some(Ordering::Less),
            Op::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        }
    }
}

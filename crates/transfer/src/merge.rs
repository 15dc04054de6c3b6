//! Two tables read side by side, in the order of their keys.
//!
//! All services give rows in one order, so that both tables are read once and nothing of them has to be remembered. One
//! that does not is refused: what is missing could not be told from what comes later.

use crate::{Entity, Error, Page, Result, Source};
use std::cmp::Ordering;
use std::vec;
use tokio::sync::mpsc::{Receiver, channel};

/// Read while the pages before are looked at.
const PAGES_AHEAD: usize = 2;

/// What the tables have at the next key.
#[derive(Debug, PartialEq)]
pub(crate) enum Pair {
    /// A row of the first table only.
    First(Entity),
    /// A row of the second only.
    Second(Entity),
    /// A row of each.
    Both(Entity, Entity),
}

/// Reads two tables.
#[derive(Debug)]
pub(crate) struct Merge {
    first: Cursor,
    second: Cursor,
}

impl Merge {
    pub(crate) fn new(first: impl Source + 'static, second: impl Source + 'static) -> Merge {
        Merge { first: Cursor::new(first), second: Cursor::new(second) }
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Pair>> {
        let (Merge { first, second }, order) = match (self.first.peek().await?, self.second.peek().await?) {
            (None, None) => return Ok(None),
            (Some(_), None) => (self, Ordering::Less),
            (None, Some(_)) => (self, Ordering::Greater),
            (Some(one), Some(other)) => {
                let order = one.order(other);
                (self, order)
            }
        };
        Ok(Some(match order {
            Ordering::Less => Pair::First(first.take()),
            Ordering::Greater => Pair::Second(second.take()),
            Ordering::Equal => Pair::Both(first.take(), second.take()),
        }))
    }
}

/// A place among the rows of a table, which are read ahead.
#[derive(Debug)]
struct Cursor {
    /// `None` for the end, so that it is not taken for one if whoever reads has broken down.
    pages: Receiver<Result<Option<Page>>>,
    rows: vec::IntoIter<Entity>,
    /// The last row of the last page.
    last: Option<Entity>,
    is_end: bool,
}

impl Cursor {
    fn new(mut source: impl Source + 'static) -> Cursor {
        let (sender, pages) = channel(PAGES_AHEAD);
        tokio::spawn(async move {
            loop {
                let page = source.next_page().await;
                let is_last = !matches!(page, Ok(Some(_)));
                if sender.send(page).await.is_err() || is_last {
                    return;
                }
            }
        });
        Cursor { pages, rows: Vec::new().into_iter(), last: None, is_end: false }
    }

    async fn peek(&mut self) -> Result<Option<&Entity>> {
        while self.rows.as_slice().is_empty() && !self.is_end {
            let page = self.pages.recv().await.unwrap_or(Err(Error::Unavailable("reading ended early".into())))?;
            let Some(Page { entities, .. }) = page else {
                self.is_end = true;
                break;
            };
            let before = self.last.iter().chain(&entities);
            if let Some((_, late)) = before
                .zip(&entities[usize::from(self.last.is_none()).min(entities.len())..])
                .find(|(one, next)| one.order(next).is_ge())
            {
                return Err(Error::Different(format!(
                    "The rows do not come in the order of their keys: {} comes too late. Use export and import.",
                    late.key()
                )));
            }
            if let Some(last) = entities.last() {
                self.last = Some(last.clone());
            }
            self.rows = entities.into_iter();
        }
        Ok(self.rows.as_slice().first())
    }

    /// The row that was looked at.
    fn take(&mut self) -> Entity {
        self.rows.next().expect("it was looked at")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Pages of rows, each a letter for the partition and one for the row; `!` is a failure.
    struct Pages(VecDeque<&'static str>);

    impl Source for Pages {
        async fn next_page(&mut self) -> Result<Option<Page>> {
            let Some(page) = self.0.pop_front() else { return Ok(None) };
            if page == "!" {
                return Err(Error::Unavailable("it is gone".into()));
            }
            assert_ne!(page, "panic");
            Ok(Some(Page { entities: page.split_whitespace().map(row).collect(), ..Page::default() }))
        }
    }

    fn row(key: &str) -> Entity {
        let (partition_key, row_key) = key.split_at(1);
        Entity { partition_key: partition_key.into(), row_key: row_key.into(), properties: Vec::new() }
    }

    async fn merged(first: &[&'static str], second: &[&'static str]) -> std::result::Result<String, String> {
        let pages = |pages: &[&'static str]| Pages(pages.iter().copied().collect());
        let mut merge = Merge::new(pages(first), pages(second));
        let mut text = String::new();
        let name = |row: Entity| format!("{}{}", row.partition_key, row.row_key);
        while let Some(pair) = merge.next().await.map_err(|error| error.to_string())? {
            text += &match pair {
                Pair::First(row) => format!("{}- ", name(row)),
                Pair::Second(row) => format!("-{} ", name(row)),
                Pair::Both(one, other) => format!("{}{} ", name(one), name(other)),
            };
        }
        Ok(text.trim_end().to_owned())
    }

    #[tokio::test]
    async fn keys_meet() {
        for (first, second, expect) in [
            (&[][..], &[][..], ""),
            (&["a1 a2", "b1"], &[], "a1- a2- b1-"),
            (&["", "a1"], &["", "", "a1", ""], "a1a1"),
            (&["a1 a3"], &["a2", "a3 b1"], "a1- -a2 a3a3 -b1"),
            // A character outside the basic plane sorts before the last ones of it.
            (&["a\u{1F600}", "a\u{FFFF}"], &["a\u{FFFF}"], "a\u{1F600}- a\u{FFFF}a\u{FFFF}"),
        ] {
            assert_eq!(merged(first, second).await.as_deref(), Ok(expect));
        }
    }

    #[tokio::test]
    async fn what_is_no_end_is_not_taken_for_one() {
        for (pages, says) in [
            (&["a2 a1"][..], "RowKey '1' comes too late"),
            (&["a2", "a1"], "RowKey '1' comes too late"),
            (&["a1", "", "a1"], "RowKey '1' comes too late"),
            (&["a1", "!"], "it is gone"),
            (&["a1", "panic"], "reading ended early"),
        ] {
            let error = merged(pages, &[]).await.unwrap_err();
            assert!(error.contains(says), "{error}");
            let error = merged(&["a1"], pages).await.unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}

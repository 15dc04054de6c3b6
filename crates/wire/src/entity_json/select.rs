//! `$select`: the columns a reply has, and how the reply says so.

/// The columns of a `$select`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectColumns {
    /// Names in the order in which they were asked for, each once; `None` for all.
    columns: Option<Vec<String>>,
    /// What follows `&$select=` in `odata.metadata`.
    context: String,
}

impl SelectColumns {
    /// Reads the value of the option as it stands in the query string, still percent-encoded. Spaces around a name do
    /// not count, and `*` means all columns.
    ///
    /// The service repeats the value in `odata.metadata` with its commas decoded and everything else as it came.
    pub fn parse(raw: &str) -> SelectColumns {
        let decoded = percent_decode(raw);
        let mut columns: Vec<String> = Vec::new();
        let mut all = false;
        for name in decoded.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            all |= name == "*";
            columns.push(name.to_owned());
        }
        // The first of each name stays; a list of thousands of names must not cost their square.
        let mut seen = std::collections::HashSet::with_capacity(columns.len());
        columns.retain(|name| seen.insert(name.clone()));
        let context = raw.replace("%2C", ",").replace("%2c", ",");
        SelectColumns { columns: (!all && !columns.is_empty()).then_some(columns), context }
    }

    /// The names in the order in which they were asked for, each once; `None` for all columns.
    pub fn names(&self) -> Option<&[String]> {
        self.columns.as_deref()
    }

    /// What follows `&$select=` in `odata.metadata`.
    pub(super) fn context(&self) -> &str {
        &self.context
    }
}

/// Decodes `%XX` and `+`. What is no escape stays as it is: a name with it will be unknown, not an error.
fn percent_decode(raw: &str) -> String {
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.as_bytes();
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    while let [first, more @ ..] = rest {
        rest = more;
        match (first, more) {
            (b'%', [high, low, more @ ..]) if digit(high).is_some() && digit(low).is_some() => {
                let value = digit(high).unwrap_or(0) * 16 + digit(low).unwrap_or(0);
                bytes.push(value as u8);
                rest = more;
            }
            (b'+', _) => bytes.push(b' '),
            _ => bytes.push(*first),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_context() {
        for (raw, names, context) in [
            ("age", Some(&["age"][..]), "age"),
            ("age%2Csex", Some(&["age", "sex"]), "age,sex"),
            ("age,%20sex", Some(&["age", "sex"]), "age,%20sex"),
            ("age%2c+sex", Some(&["age", "sex"]), "age,+sex"),
            ("b,a,b", Some(&["b", "a"]), "b,a,b"),
            ("%C3%A9", Some(&["\u{E9}"]), "%C3%A9"),
            ("a%2", Some(&["a%2"]), "a%2"),
            ("*", None, "*"),
            ("a,*", None, "a,*"),
            ("", None, ""),
            (",,", None, ",,"),
        ] {
            let select = SelectColumns::parse(raw);
            let expect = names.map(|names| names.iter().map(|name| name.to_string()).collect::<Vec<_>>());
            assert_eq!(select.names(), expect.as_deref(), "{raw}");
            assert_eq!(select.context(), context);
        }
    }
}

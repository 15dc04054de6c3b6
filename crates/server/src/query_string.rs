//! The query of a URL.

use std::borrow::Cow;

/// Names and values, decoded, in their order; raw values are kept for the few that are quoted back as they came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
    raw: Vec<String>,
}

impl Query {
    /// Reads a query as it stood on the request line. `None` if an escape in it is broken.
    pub(crate) fn parse(text: &str) -> Option<Query> {
        let mut query = Query::default();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = decode(name, true)?.into_owned();
            // A signature is base64, which has no spaces: clients that do not escape its `+` are understood.
            let decoded = decode(value, name != "sig")?.into_owned();
            query.pairs.push((name, decoded));
            query.raw.push(value.to_owned());
        }
        Some(query)
    }

    pub(crate) fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }

    /// The first value of that name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The first value of that name, as it stood on the request line.
    pub(crate) fn raw(&self, name: &str) -> Option<&str> {
        let index = self.pairs.iter().position(|(key, _)| key == name)?;
        Some(&self.raw[index])
    }
}

/// Takes percent-encoding away. `None` if an escape is broken or the result is no text.
pub(crate) fn decode(text: &str, plus_is_space: bool) -> Option<Cow<'_, str>> {
    if memchr::memchr2(b'%', b'+', text.as_bytes()).is_none() {
        return Some(Cow::Borrowed(text));
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                (digit()? * 16 + digit()?) as u8
            }
            b'+' if plus_is_space => b' ',
            byte => byte,
        });
    }
    String::from_utf8(out).ok().map(Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs() {
        let query = Query::parse("%24filter=A+eq%20'b%2Bc'&$top=&x&sig=a+b%2B&$select=a%2Cb").unwrap();
        assert_eq!(query.get("$filter"), Some("A eq 'b+c'"));
        assert_eq!((query.get("$top"), query.get("x"), query.get("y")), (Some(""), Some(""), None));
        assert_eq!(query.get("sig"), Some("a+b+"));
        assert_eq!((query.get("$select"), query.raw("$select")), (Some("a,b"), Some("a%2Cb")));
        for broken in ["a=%", "a=%4", "a=%zz", "a=%ff"] {
            assert!(Query::parse(broken).is_none(), "{broken}");
        }
    }
}

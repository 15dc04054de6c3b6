//! A document as a tree of elements with text: all that the service's documents are made of.

use super::invalid_document;
use partita_model::ServiceError;
use quick_xml::Reader;
use quick_xml::events::Event;

/// Most bytes of a document. The largest legal one, five CORS rules, is below 8 KiB.
const DOCUMENT_BYTES_MAX: usize = 256 * 1024;
/// Most elements of a document.
const ELEMENTS_MAX: usize = 2048;
/// Deepest nesting of elements.
const DEPTH_MAX: usize = 16;

/// An element. Attributes, comments and processing instructions are not kept: nothing here uses them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) children: Vec<Element>,
}

impl Element {
    /// Reads a document whose root has the name `root`. `None` if there is nothing but white space.
    pub(super) fn read(body: &[u8], root: &str) -> Result<Option<Element>, ServiceError> {
        if body.len() > DOCUMENT_BYTES_MAX {
            return Err(invalid_document("The document is too large."));
        }
        let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
        let text = std::str::from_utf8(body).map_err(|_| invalid_document("The document is not UTF-8."))?;
        if text.trim_ascii().is_empty() {
            return Ok(None);
        }
        if !text.chars().all(is_xml_character) {
            return Err(invalid_document("The document has a character that XML does not allow."));
        }
        let document = read_tree(text)?;
        if document.name != root {
            return Err(invalid_document(format_args!("The root of the document is not {root}.")));
        }
        Ok(Some(document))
    }

    /// The child of that name. More than one is an error.
    pub(super) fn child(&self, name: &str) -> Result<Option<&Element>, ServiceError> {
        let mut found = self.children.iter().filter(|child| child.name == name);
        let first = found.next();
        if found.next().is_some() {
            return Err(invalid_document(format_args!("{name} comes twice in {}.", self.name)));
        }
        Ok(first)
    }

    /// The child of that name, which must be there.
    pub(super) fn required(&self, name: &str) -> Result<&Element, ServiceError> {
        self.child(name)?.ok_or_else(|| invalid_document(format_args!("{} has no {name}.", self.name)))
    }

    /// Checks that every child is one of `names`.
    pub(super) fn only(&self, names: &[&str]) -> Result<(), ServiceError> {
        match self.children.iter().find(|child| !names.contains(&child.name.as_str())) {
            None => Ok(()),
            Some(_) => Err(invalid_document(format_args!("{} has a child that does not belong there.", self.name))),
        }
    }

    /// The text without the white space around it.
    pub(super) fn value(&self) -> &str {
        self.text.trim()
    }

    /// The text as `true` or `false`.
    pub(super) fn boolean(&self) -> Result<bool, ServiceError> {
        self.value().to_ascii_lowercase().parse().map_err(|_| self.bad_value())
    }

    /// The error that this element's text is not what it should be.
    pub(super) fn bad_value(&self) -> ServiceError {
        let value = self.value().chars().take(64).collect();
        ServiceError::InvalidXmlNodeValue { name: self.name.clone(), value }
    }
}

fn read_tree(text: &str) -> Result<Element, ServiceError> {
    let mut reader = Reader::from_str(text);
    let mut open: Vec<Element> = Vec::new();
    let mut root = None;
    let mut count = 0;
    loop {
        let at = reader.buffer_position();
        let broken = || invalid_document(format_args!("The document is not well formed near byte {at}."));
        let event = reader.read_event().map_err(|_| broken())?;
        match event {
            Event::Start(ref start) | Event::Empty(ref start) => {
                count += 1;
                if count > ELEMENTS_MAX || open.len() >= DEPTH_MAX || (open.is_empty() && root.is_some()) {
                    return Err(broken());
                }
                if start.attributes().any(|attribute| attribute.is_err()) {
                    return Err(broken());
                }
                let element = Element { name: start.name().as_ref().to_owned(), ..Element::default() };
                match event {
                    Event::Start(_) => open.push(element),
                    _ => close(element, &mut open, &mut root),
                }
            }
            Event::End(_) => {
                let element = open.pop().ok_or_else(broken)?;
                close(element, &mut open, &mut root);
            }
            // Text around the root says nothing, so a client that sends some is understood all the same.
            Event::Text(text) => {
                if let Some(element) = open.last_mut() {
                    element.text.push_str(&text.xml10_content());
                }
            }
            Event::CData(text) => open.last_mut().ok_or_else(broken)?.text.push_str(&text.xml10_content()),
            Event::GeneralRef(reference) => {
                let element = open.last_mut().ok_or_else(broken)?;
                match reference.resolve_char_ref().map_err(|_| broken())? {
                    Some(character) if is_xml_character(character) => element.text.push(character),
                    Some(_) => return Err(broken()),
                    None => {
                        let name = reference.xml10_content();
                        let text = quick_xml::escape::resolve_predefined_entity(&name).ok_or_else(broken)?;
                        element.text.push_str(text);
                    }
                }
            }
            // Entities are declared there, and they are the classic way to make a small document large.
            Event::DocType(_) => return Err(invalid_document("A document type is not accepted.")),
            Event::Decl(_) | Event::Comment(_) | Event::PI(_) => {}
            Event::Eof => break,
        }
    }
    match root {
        Some(root) if open.is_empty() => Ok(root),
        _ => Err(invalid_document("The document ends before its root is closed.")),
    }
}

/// What XML 1.0 allows, so that what was read can be written again.
fn is_xml_character(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{FFFD}' | '\u{10000}'..)
}

fn close(element: Element, open: &mut [Element], root: &mut Option<Element>) {
    match open.last_mut() {
        Some(parent) => parent.children.push(element),
        None => *root = Some(element),
    }
}

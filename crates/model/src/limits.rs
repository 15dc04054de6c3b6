//! Every limit of the service, and of ours where the service has none that is published.

/// Most bytes an entity may count by the published formula, see [`crate::check_limits`].
pub const ENTITY_BYTES_MAX: usize = 1024 * 1024;
/// Most properties of an entity besides PartitionKey, RowKey and Timestamp.
pub const CUSTOM_PROPERTIES_MAX: usize = 252;
/// Most UTF-16 code units of a property name.
pub const PROPERTY_NAME_UNITS_MAX: usize = 255;
/// Most UTF-16 code units of a string value (64 KiB).
pub const STRING_UNITS_MAX: usize = 32 * 1024;
/// Most bytes of a binary value.
pub const BINARY_BYTES_MAX: usize = 64 * 1024;
/// Most UTF-16 code units of a PartitionKey or a RowKey.
pub const KEY_UNITS_MAX: usize = 1024;
/// Fewest characters of a table name.
pub const TABLE_NAME_CHARS_MIN: usize = 3;
/// Most characters of a table name.
pub const TABLE_NAME_CHARS_MAX: usize = 63;
/// Most bytes of a request body, `$batch` included.
pub const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Most bytes of the bodies of all requests under way together; further ones wait.
pub const ALL_BODIES_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How much of that is kept for small bodies, so that those who send much and slowly hold up nobody else.
pub const SMALL_BODIES_BYTES: usize = 64 * 1024 * 1024;
/// Up to this size a body is small.
pub const SMALL_BODY_BYTES_MAX: usize = 64 * 1024;
/// Most bytes of all responses together that clients have not read yet; beyond it pages end early.
pub const ALL_RESPONSES_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How much of that is kept for small responses.
pub const SMALL_RESPONSES_BYTES: usize = 64 * 1024 * 1024;
/// Up to this size a response is small.
pub const SMALL_RESPONSE_BYTES_MAX: usize = 64 * 1024;
/// Most operations of an entity group transaction.
pub const BATCH_OPERATIONS_MAX: usize = 100;
/// Most rows on one page of a query.
pub const PAGE_ROWS_MAX: usize = 1000;
/// A page ends behind the row with which its body passes this size.
pub const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest a query may run before its page ends with a continuation token.
pub const QUERY_SECONDS_MAX: u64 = 5;
/// Longest any request may take; also the largest `timeout` parameter.
pub const REQUEST_SECONDS_MAX: u64 = 30;
/// Most stored access policies of a table.
pub const ACCESS_POLICIES_MAX: usize = 5;
/// Most characters of the Id of a stored access policy.
pub const ACCESS_POLICY_ID_CHARS_MAX: usize = 64;
/// Most CORS rules of a service.
pub const CORS_RULES_MAX: usize = 5;
/// Most bytes of `x-ms-client-request-id`.
pub const CLIENT_REQUEST_ID_BYTES_MAX: usize = 1024;

/// Most bytes of a request target. Azure takes about 32 KiB; Orleans sends filters that come close to it.
pub const URL_BYTES_MAX: usize = 64 * 1024;
/// Most bytes of all headers of a request together, the request line included.
pub const HEADER_BYTES_MAX: usize = 128 * 1024;
/// Of the head of a request, what each connection has for nothing.
pub const HEAD_BYTES_FREE: usize = 8 * 1024;
/// Most bytes beyond that of the heads of all requests together.
pub const ALL_HEADS_BYTES_MAX: usize = 64 << 20;
/// Most headers of a request. For more, hyper would have to allocate room anew for each request.
pub const HEADERS_MAX: usize = 100;
/// Deepest nesting of a JSON body. An entity is flat: anything deeper than this is not one.
pub const JSON_DEPTH_MAX: usize = 32;
/// Deepest nesting of parentheses and `not` in a `$filter`.
pub const FILTER_DEPTH_MAX: usize = 500;
/// Most comparisons in a `$filter`.
pub const FILTER_COMPARISONS_MAX: usize = 2000;

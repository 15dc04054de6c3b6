//! Every error of the service: one condition, its code, status and text in one place.
//!
//! Named by condition, since one code stands for many conditions. The table is the only place in the tree that holds a
//! status number or the text of an error.

use std::fmt;

/// An HTTP status.
pub type Status = u16;

/// Which part of the service finds a condition. It decides what the reply looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// The front end: nothing is said of the service behind it, not even the version.
    Front,
    /// The table service before it has looked at the operation as a whole: replies lack `Cache-Control`.
    Early,
    /// The table service proper.
    Late,
    /// The store: as `Late`, and in a change set of one operation the message has no index.
    Store,
}

macro_rules! error_table {
    ($($(#[$doc:meta])* $name:ident $({ $($field:ident),+ })? => $code:literal, $status:literal, $layer:ident, $message:literal;)*) => {
        /// A condition under which the service refuses a request.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the table holds the text of each")]
        pub enum ServiceError {
            $($(#[$doc])* $name $({ $($field: String),+ })?,)*
        }

        impl ServiceError {
            /// The code on the wire.
            pub fn code(&self) -> &'static str {
                match self { $(ServiceError::$name { .. } => $code,)* }
            }

            /// The HTTP status.
            pub fn status(&self) -> Status {
                match self { $(ServiceError::$name { .. } => $status,)* }
            }

            /// The part of the service that finds it.
            pub fn layer(&self) -> Layer {
                match self { $(ServiceError::$name { .. } => Layer::$layer,)* }
            }
        }

        /// The message, without index, request id and time.
        impl fmt::Display for ServiceError {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $(ServiceError::$name $({ $($field),+ })? => write!(f, $message),)* }
            }
        }
    };
}

error_table! {
    // Front end: URL, headers, who is asking.
    AuthenticationFailed { detail }    => "AuthenticationFailed", 403, Front, "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.{detail}";
    AuthorizationMalformed             => "InvalidAuthenticationInfo", 400, Front, "Authentication information is not given in the correct format. Check the value of Authorization header.";
    BearerRefused                      => "InvalidAuthenticationInfo", 401, Front, "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.";
    NoAuthenticationInformation        => "NoAuthenticationInformation", 401, Front, "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.";
    AccountNotFound                    => "ResourceNotFound", 404, Front, "The specified resource does not exist.";
    PermissionMismatch                 => "AuthorizationPermissionMismatch", 403, Front, "This request is not authorized to perform this operation using this permission.";
    ProtocolMismatch                   => "AuthorizationProtocolMismatch", 403, Front, "This request is not authorized to perform this operation using this protocol.";
    ResourceTypeMismatch               => "AuthorizationResourceTypeMismatch", 403, Front, "This request is not authorized to perform this operation using this resource type.";
    ServiceMismatch                    => "AuthorizationServiceMismatch", 403, Front, "This request is not authorized to perform this operation using this service.";
    SourceAddressMismatch { address }  => "AuthorizationSourceIPMismatch", 403, Front, "This request is not authorized to perform this operation using this source IP {address}.";
    NotForSignatures                   => "AuthorizationFailure", 403, Front, "This request is not authorized to perform this operation.";
    SecondaryWrite                     => "InsufficientAccountPermissions", 403, Front, "Write operations are not allowed.";
    CorsHeaderMissing                  => "InvalidHeaderValue", 400, Front, "A required CORS header is not present.";
    CorsPreflightFailure               => "CorsPreflightFailure", 403, Front, "CORS not enabled or no matching rule found for this request.";
    InvalidQueryParameterValue { name, value } => "InvalidQueryParameterValue", 400, Front, "Value for one of the query parameters specified in the request URI is invalid.\nQueryParameterName:{name}\nQueryParameterValue:{value}";
    InvalidUri                         => "InvalidUri", 400, Front, "The requested URI does not represent any resource on the server.";
    UnsupportedHttpVerb                => "UnsupportedHttpVerb", 405, Front, "The resource doesn't support specified Http Verb.";
    InvalidHeaderValue { name, value } => "InvalidHeaderValue", 400, Front, "The value for one of the HTTP headers is not in the correct format.\nHeaderName:{name}\nHeaderValue:{value}";
    XMethodNotUsingPost                => "XMethodNotUsingPost", 400, Front, "The request uses X-HTTP-Method with an HTTP verb other than POST.";
    XMethodIncorrectValue              => "XMethodIncorrectValue", 400, Front, "The HTTP method specified in X-HTTP-Method is not valid.";
    XMethodIncorrectCount              => "XMethodIncorrectCount", 400, Front, "More than one X-HTTP-Method is specified.";
    RequestBodyTooLarge                => "RequestBodyTooLarge", 413, Front, "The request body is too large and exceeds the maximum permissible limit.";
    RequestUrlTooLong                  => "RequestUrlFailedToParse", 414, Front, "The request URI is longer than this server reads.";
    RequestTimedOut                    => "OperationTimedOut", 500, Front, "The operation could not be completed within the permitted time.";
    RequestIncomplete                  => "InvalidInput", 400, Front, "The request body ended before its announced length.";

    // Content negotiation.
    AtomFormatNotSupported             => "AtomFormatNotSupported", 415, Early, "Atom format is not supported.";
    JsonVerboseFormatNotSupported      => "JsonVerboseFormatNotSupported", 415, Early, "JSON verbose format is not supported.";
    MediaTypeNotSupported              => "MediaTypeNotSupported", 415, Early, "None of the provided media types are supported";

    // The table service before it looks at the operation.
    TableNameLength                    => "OutOfRangeInput", 400, Early, "The specified resource name length is not within the permissible limits.";
    TableNameCharacters                => "InvalidResourceName", 400, Early, "The specifed resource name contains invalid characters.";
    TableNotFound                      => "TableNotFound", 404, Early, "The table specified does not exist.";
    KeyCount { account, table }        => "InvalidInput", 400, Early, "The number of keys specified in the URI does not match number of key properties for the resource '{account}.{table}'.";
    QuerySyntax                        => "InvalidInput", 400, Early, "Bad Request - Error in query syntax.";
    UrlKeyOutOfRange                   => "OutOfRangeInput", 400, Early, "One of the request inputs is out of range.";
    FilterSyntax { position, text }    => "InvalidInput", 400, Early, "Syntax error at position {position} in '{text}'.";
    FilterNotBoolean                   => "InvalidInput", 400, Early, "The $filter expression must evaluate to a single boolean value.";
    RequestInputInvalid                => "InvalidInput", 400, Early, "One of the request inputs is not valid.";
    /// The filter cannot be read. What exactly was wrong, and where, follows in `detail`.
    FilterInvalid { detail }           => "InvalidInput", 400, Early, "One of the request inputs is not valid.{detail}";
    NotImplemented                     => "NotImplemented", 501, Early, "The requested operation is not implemented on the specified resource.";
    MethodNotAllowed                   => "MethodNotAllowed", 405, Early, "The requested method is not allowed on the specified resource.";
    /// The body is no JSON, or a value does not fit its type. What exactly was wrong follows in `detail`.
    BodyInvalid { detail }             => "InvalidInput", 400, Early, "An error occurred while processing this request.{detail}";
    DuplicateProperties { name }       => "DuplicatePropertiesSpecified", 400, Early, "A property is specified more than one time.\nPropertyName:{name}";
    IfMatchMissing                     => "MissingRequiredHeader", 400, Early, "An HTTP header that's mandatory for this request is not specified.\nHeaderName:If-Match";
    ETagMalformed { value }            => "InvalidInput", 400, Early, "The etag value '{value}' specified in one of the request headers is not valid. Please make sure only one etag value is specified and is valid.";

    // Entity group transactions as a whole.
    BatchMalformed { detail }          => "InvalidInput", 400, Early, "An error occurred while processing this request.{detail}";
    TooManyOperations                  => "InvalidInput", 400, Late, "The batch request operation exceeds the maximum 100 changes per change set.";
    DifferentPartitions                => "CommandsInBatchActOnDifferentPartitions", 400, Late, "All commands in a batch must operate on same entity group.";
    DifferentTables                    => "InvalidInput", 400, Late, "All commands in a batch must operate on the same table.";
    DuplicateRowInBatch                => "InvalidDuplicateRow", 400, Late, "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request.";

    // The table service proper.
    NewTableNameLength                 => "OutOfRangeInput", 400, Late, "The specified resource name length is not within the permissible limits.";
    NewTableNameCharacters             => "InvalidResourceName", 400, Late, "The specifed resource name contains invalid characters.";
    NewTableNameReserved               => "InvalidInput", 400, Late, "One of the request inputs is not valid.";
    TableAlreadyExists                 => "TableAlreadyExists", 409, Late, "The table specified already exists.";
    PropertiesNeedValue                => "PropertiesNeedValue", 400, Late, "The values are not specified for all properties in the entity.";
    KeyNotString                       => "InvalidInput", 400, Late, "One of the request inputs is not valid.";
    KeyOutOfRange { key, value }       => "OutOfRangeInput", 400, Late, "The '{key}' parameter of value '{value}' is out of range.";
    DateOutOfRange { name, value }     => "OutOfRangeInput", 400, Late, "The '{name}' parameter of value '{value}' is out of range.";
    KeyRangeViolated                   => "AuthorizationFailure", 403, Late, "This request is not authorized to perform this operation.";
    BatchPermissionMismatch            => "AuthorizationPermissionMismatch", 403, Late, "This request is not authorized to perform this operation using this permission.";
    BatchResourceTypeMismatch          => "AuthorizationResourceTypeMismatch", 403, Late, "This request is not authorized to perform this operation using this resource type.";
    BatchNotForSignatures              => "AuthorizationFailure", 403, Late, "This request is not authorized to perform this operation.";
    ResourceNotFound                   => "ResourceNotFound", 404, Store, "The specified resource does not exist.";

    // Limits of the entity and its state: found by the store.
    KeyValueTooLarge { key }           => "KeyValueTooLarge", 400, Store, "The '{key}' property exceeds the maximum allowed key size (2KB). It is a UTF-16 encoded string and the maximum number of characters should be 1K or less.";
    TooManyProperties                  => "TooManyProperties", 400, Store, "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data. Each entity also has 3 system properties.";
    PropertyNameTooLong                => "PropertyNameTooLong", 400, Store, "The property name exceeds the maximum allowed length (255).";
    PropertyNameInvalid { name }       => "PropertyNameInvalid", 400, Store, "The property name is invalid.\nPropertyName:{name}";
    PropertyValueTooLarge { name }     => "PropertyValueTooLarge", 400, Store, "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 encoded and the maximum number of characters should be 32K or less.\nPropertyName:{name}";
    EntityTooLarge                     => "EntityTooLarge", 400, Store, "The entity is larger than the maximum allowed size (1MB).";
    EntityAlreadyExists                => "EntityAlreadyExists", 409, Store, "The specified entity already exists.";
    UpdateConditionNotSatisfied        => "UpdateConditionNotSatisfied", 412, Store, "The update condition specified in the request was not satisfied.";

    // XML bodies.
    InvalidXmlDocument { detail }      => "InvalidXmlDocument", 400, Early, "XML specified is not syntactically valid.{detail}";
    InvalidXmlNodeValue { name, value } => "InvalidXmlNodeValue", 400, Early, "The value provided for one of the XML nodes in the request body was not in the correct format.\nXmlNodeName:{name}\nXmlNodeValue:{value}";

    // The server itself.
    ServerBusy                         => "ServerBusy", 503, Late, "The server is busy.";
    WritesRefused                      => "ServerBusy", 503, Late, "The server takes no writes because one could not be made durable. Its log says why; it has to be restarted.";
    OperationTimedOut                  => "OperationTimedOut", 500, Late, "The operation could not be completed within the permitted time.";
    InternalError                      => "InternalError", 500, Late, "Server encountered an internal error. Please try again after some time.";
}

impl std::error::Error for ServiceError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_has_code_status_layer_and_text() {
        let error = ServiceError::KeyOutOfRange { key: "RowKey".into(), value: "a#".into() };
        assert_eq!((error.code(), error.status(), error.layer()), ("OutOfRangeInput", 400, Layer::Late));
        assert_eq!(error.to_string(), "The 'RowKey' parameter of value 'a#' is out of range.");
    }
}

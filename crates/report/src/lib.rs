//! The result document: JSON schema, text and view model.

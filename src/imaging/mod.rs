//! Image reconstruction.

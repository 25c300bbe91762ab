"""The gRPC surface: servicers, conversion, validation, interceptors and the error table."""

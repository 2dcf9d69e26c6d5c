"""Container images without a container engine: layers packed here, assembled and pushed by crane."""

"""A real Kafka broker for tests and for `just kafka`: jars from Maven, no container engine."""

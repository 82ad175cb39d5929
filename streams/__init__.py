"""What happened: events, their envelope and topics, and the log that keeps them."""

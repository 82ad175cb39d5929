"""What follows from the memories of Context Graph."""

"""What operators did about dead letters."""

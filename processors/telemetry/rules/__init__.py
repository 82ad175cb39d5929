"""Pure rules on telemetry."""

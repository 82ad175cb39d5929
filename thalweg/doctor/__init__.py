"""What `thalweg doctor` checks: the installation, and what it runs on."""

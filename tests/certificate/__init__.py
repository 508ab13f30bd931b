"""What certificates are checked against: an accounting and an enumeration that share no code with the product."""

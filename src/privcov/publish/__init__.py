"""The one bridge from rows to a public result: check, pay, draw, read, sum, certify, deliver."""

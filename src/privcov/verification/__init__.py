"""Verification of files: their form, their signature, and that the stated noise gives the promised loss."""

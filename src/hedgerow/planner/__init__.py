"""What accuracy to expect from which ε, before any private row is read: forests trained on rows that are made."""

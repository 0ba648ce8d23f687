"""Claims that others made, judged on studies (docs/CLAIMS.md)."""

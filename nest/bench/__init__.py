"""Measurements: parity with the reference library and the f64 oracle, loading, speed."""

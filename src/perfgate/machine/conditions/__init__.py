"""Environment: what disturbs a measurement, sampled while it runs. It judges no metric."""

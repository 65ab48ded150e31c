/* Every suite, one line each, in the order in which they run: what others stand on comes first. */
X(check_suite)
X(math_suite)
X(rng_suite)
X(safetensors_suite)
X(synthetic_suite)

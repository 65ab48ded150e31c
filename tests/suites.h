/* Every suite, one line each, in the order in which they run: what others stand on comes first.
 * MTAN_TESTS_THREADED leaves those that use threads, for ThreadSanitizer, under which the others would take minutes;
 * MTAN_TESTS_LIBRARY leaves those of the library, where the command cannot be built; MTAN_ONE_SUITE names the only one. */
#ifdef MTAN_ONE_SUITE
X(MTAN_ONE_SUITE)
#else
#ifndef MTAN_TESTS_THREADED
X(check_suite)
X(math_suite)
X(rng_suite)
X(safetensors_suite)
X(preparation_suite)
X(frequencies_suite)
#ifndef MTAN_TESTS_LIBRARY
X(generators_suite)
X(gzip_suite)
X(synthetic_suite)
X(physionet_suite)
X(activity_suite)
X(mimic3_suite)
X(own_suite)
X(split_suite)
X(prep_suite)
X(metrics_suite)
#endif
X(ops_suite)
X(blocks_suite)
X(gradient_suite)
X(dropout_suite)
X(simd_suite)
X(cuda_suite)
X(golden_suite)
X(observed_suite)
X(architecture_suite)
X(model_suite)
X(modelfile_suite)
X(int8_suite)
X(arena_suite)
X(status_suite)
X(stream_suite)
X(device_suite)
#ifndef MTAN_TESTS_LIBRARY
X(data_sets_suite)
X(recipes_suite)
X(ode_suite)
X(baselines_suite)
X(ip_nets_suite)
X(latent_suite)
X(torchfile_suite)
X(figure_suite)
X(check_data_suite)
X(compare_suite)
X(options_suite)
X(stream_command_suite)
X(export_suite)
X(int8_command_suite)
X(files_suite)
X(command_suite)
X(runs_suite)
X(own_command_suite)
X(prepared_command_suite)
X(cuda_command_suite)
X(baseline_command_suite)
X(ablation_suite)
X(table_suite)
X(bench_command_suite)
#endif
#endif
#ifndef MTAN_TESTS_LIBRARY
X(memory_suite)
#endif
X(threads_suite)
X(training_suite)
#endif

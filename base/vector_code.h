#pragma once

/// Precedes the definition of a function with a hot loop: it is compiled for plain x86-64, AVX2 and AVX-512, and the
/// loader picks one version. All versions do the same operations in the same order on each element, so that results are
/// the same on every machine, if there is no product (it might be fused with a sum) and no sum over a row (reordered).
///
/// The sanitizers' start-up code does not work with functions that the loader picks.
#if defined(__x86_64__) && defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
#define SHARDPLAN_VECTOR_CODE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SHARDPLAN_VECTOR_CODE
#endif

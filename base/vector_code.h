#pragma once

/// Put before the definition of a function with a hot loop: it is compiled for plain x86-64, AVX2 and AVX-512, and the
/// loader picks. All do the same operations in the same order on each element as long as there is no product (which might
/// be fused with a sum) and no sum over a row (whose order might change), so that results are the same on every machine.
///
/// The sanitizers' start-up code does not go with functions that the loader picks.
#if defined(__x86_64__) && defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
#define SHARDPLAN_VECTOR_CODE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SHARDPLAN_VECTOR_CODE
#endif

#pragma once

/// Marks a function with hot loops over doubles: it is compiled for plain x86-64 and for AVX2, and the loader picks.
/// Both do the same operations in the same order on each element (no fused multiply-add, no reordered sums), so that
/// results are the same on every machine. The sanitizers' start-up does not go with it.
#if defined(__x86_64__) && defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
#define SHARDPLAN_VECTOR_CODE __attribute__((target_clones("avx2", "default")))
#else
#define SHARDPLAN_VECTOR_CODE
#endif

#pragma once

namespace shardplan {

/// Makes the program keep memory that it frees, and use pages of 2 MiB where the system gives them on request: planning
/// allocates and frees tables of some megabytes all the time, and clearing their small pages took a fifth of the time
/// of a short run. glibc reads the setting for large pages only from the environment, and only when a program starts,
/// so this starts the program again, once, in the same process, unless GLIBC_TUNABLES is set already (to be set for
/// tools that do not follow that, such as valgrind). To be called first, with the arguments of main.
void set_up_memory(char** argv);

/// From now on larger pieces of freed memory go back to the system: kept ones leave gaps, which in a model of a million
/// operators are a tenth of its memory.
void give_back_memory();

}  // namespace shardplan

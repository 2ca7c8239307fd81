#pragma once

namespace shardplan {

/// Makes the program keep memory that it frees, and use pages of 2 MiB where the system offers them for the asking:
/// planning allocates and frees tables of some megabytes all the time, and clearing their pages one by one took up to
/// a third of the time of a short run. glibc reads the setting for large pages only from the environment, and only
/// when a program starts, so this starts the program again, once, unless GLIBC_TUNABLES is set already. To be called
/// first, with the arguments of main.
void set_up_memory(char** argv);

}  // namespace shardplan

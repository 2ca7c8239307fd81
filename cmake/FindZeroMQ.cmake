# Debian's ZeroMQ has a pkg-config file and no CMake package. Defines the target ZeroMQ::ZeroMQ.
find_path(ZeroMQ_INCLUDE_DIR zmq.h)
find_library(ZeroMQ_LIBRARY zmq)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ZeroMQ REQUIRED_VARS ZeroMQ_LIBRARY ZeroMQ_INCLUDE_DIR)
if(ZeroMQ_FOUND AND NOT TARGET ZeroMQ::ZeroMQ)
  add_library(ZeroMQ::ZeroMQ UNKNOWN IMPORTED)
  set_target_properties(ZeroMQ::ZeroMQ PROPERTIES IMPORTED_LOCATION ${ZeroMQ_LIBRARY}
                                                  INTERFACE_INCLUDE_DIRECTORIES ${ZeroMQ_INCLUDE_DIR})
endif()
mark_as_advanced(ZeroMQ_INCLUDE_DIR ZeroMQ_LIBRARY)

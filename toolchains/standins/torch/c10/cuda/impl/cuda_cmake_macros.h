/* Stand-in: torch generates this header in builds with CUDA only. */
#pragma once
#define C10_CUDA_BUILD_SHARED_LIBS

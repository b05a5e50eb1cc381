/* Stand-in: NVRTC comes without C headers, and declares this one's functions by itself. */

//! Linux sockets, kernel stamps and pacing, and the estimators' world over them.

//! Traffic over real sockets with the models and names of the simulator's cross traffic: generator, sink, statistics per flow.

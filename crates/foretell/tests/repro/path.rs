//! What is predicted from a recorded path, and what a forced run shows.

//! Every run of a program is the same run, whatever its arguments, environment and folder.

/* once_init_bad.c by hand: the same shared variables and steps. */
int table, runs, a_sees, b_sees;
byte ended;
active proctype one() {
  if :: !table -> runs++; table = 42 :: else fi;
  a_sees = table;
  ended++
}
active proctype two() {
  if :: !table -> runs++; table = 42 :: else fi;
  b_sees = table;
  ended++
}
active proctype end() {
  ended == 2;
  assert(runs == 1 && a_sees == 42 && b_sees == 42)
}

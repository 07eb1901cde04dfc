/* once_init.c by hand: the same shared variables and steps. */
int table, runs, a_sees, b_sees;
byte once;
bool first_a, first_b;
byte ended;
active proctype one() {
  atomic { if :: once == 0 -> once = 1; first_a = 1 :: else fi };
  if :: first_a -> runs++; table = 42; once = 2 :: else -> once == 2 fi;
  a_sees = table;
  ended++
}
active proctype two() {
  atomic { if :: once == 0 -> once = 1; first_b = 1 :: else fi };
  if :: first_b -> runs++; table = 42; once = 2 :: else -> once == 2 fi;
  b_sees = table;
  ended++
}
active proctype end() {
  ended == 2;
  assert(runs == 1 && a_sees == 42 && b_sees == 42)
}

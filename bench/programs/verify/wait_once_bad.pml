/* wait_once_bad.c by hand: the same shared variables and steps. */
int filled, got;
bit m;
inline lock(m) { atomic { m == 0 -> m = 1 } }
inline unlock(m) { m = 0 }
byte ended;
active proctype one() {
  lock(m);
  filled = 1;
  unlock(m);
  ended++
}
active proctype two() {
  lock(m);
  if :: !filled -> unlock(m); lock(m) :: else fi;
  got = filled;
  unlock(m);
  ended++
}
active proctype end() {
  ended == 2;
  assert(got == 1)
}

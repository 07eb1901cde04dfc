/* recursion_bad.c by hand: the same shared variables and steps. */
int total;
bit m;
inline lock(m) { atomic { m == 0 -> m = 1 } }
inline unlock(m) { m = 0 }
byte ended;
active proctype one() {
  int t;
  lock(m);
  t = total;
  total = t + 21;
  unlock(m);
  ended++
}
active proctype two() {
  int t;
  lock(m);
  t = total;
  total = t + 21;
  unlock(m);
  ended++
}
active proctype end() {
  ended == 2;
  assert(total == 41)
}

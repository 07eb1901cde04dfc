/* account_pair_bad.c by hand: the same shared variables and steps. */
int x = 10, y = 10;
bit m_x, m_y;
inline lock(m) { atomic { m == 0 -> m = 1 } }
inline unlock(m) { m = 0 }
byte ended;
active proctype one() {
  int t;
  lock(m_x);
  t = x;
  x = t - 3;
  unlock(m_x);
  t = y;
  y = t + 3;
  ended++
}
active proctype two() {
  int t;
  lock(m_y);
  t = y;
  y = t - 4;
  unlock(m_y);
  t = x;
  x = t + 4;
  ended++
}
active proctype end() {
  ended == 2;
  assert(x == 11 && y == 9)
}

/* Uses the installed package from C. */

#include <stdio.h>

int main(void) {
  puts("no C API yet");
  return 0;
}

"""Publishing (step 8): the next generation is built aside by a child process, and one commit makes it current."""

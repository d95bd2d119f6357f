/** Lists of every command in a pipe and in a file, beside those of the quick tier. */
import './runner-commands.test.ts'

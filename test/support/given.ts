// Given-when-then for the folds of src/domain: past commands, one more command, the state after it.

/** `evolve` folds a command, stored at a sequence from 1, into a state that begins as `empty`. */
export const givens =
  <State, Command>(evolve: (state: State, command: Command, seq: number) => State, empty: State) =>
  (...commands: ReadonlyArray<Command>) => {
    const before = commands.reduce((state, command, i) => evolve(state, command, i + 1), empty)
    return {
      before,
      /**
       * The state after one more command, at the next sequence or at the given one (an old sequence
       * is a redelivery).
       */
      when: (command: Command, seq = commands.length + 1): State => evolve(before, command, seq)
    }
  }

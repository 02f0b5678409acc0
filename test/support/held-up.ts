import type { Kysely, RawBuilder } from 'kysely'
import type { Tables } from '../../src/store/tables.ts'

/** Holds what the statement locks, until it is released. */
export async function heldUp(db: Kysely<Tables>, lock: RawBuilder<unknown>): Promise<{ release(): Promise<void> }> {
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  let ended: Promise<void> = Promise.resolve()
  await new Promise<void>((taken, failed) => {
    ended = db.transaction().execute(async (tx) => {
      await lock.execute(tx)
      taken()
      await released
    })
    ended.catch(failed)
  })
  return {
    release() {
      release()
      return ended
    },
  }
}

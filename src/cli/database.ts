/** `migrate` */
import { migrate } from '../runtime/migrate.ts'
import { migrations } from '../service.ts'
import type { Command } from './command.ts'

export const migrateCommand: Command = {
  name: 'migrate',
  about: 'bring the database to what this version needs',
  options: {},
  notes: ['Safe to run at any time and from several places at once. The service does the same when it starts.'],
  async run(context) {
    const quiet = { info() {}, warn() {} }
    const applied = await migrate(await context.databaseUrl(), migrations, quiet)
    context.out.result(
      { applied },
      applied.length === 0 ? ['Nothing to do.'] : applied.map((name) => `applied ${name}`),
    )
  },
}

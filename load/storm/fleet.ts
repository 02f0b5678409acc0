/** The service's processes, each of which can be killed and comes back on its port. */
import { join } from 'node:path'
import { freePort } from '../../src/runtime/free-port.ts'
import { type Program, startProgram } from '../support/processes.ts'

type Role = 'api' | 'worker'

interface Member {
  name: string
  role: Role
  env: Record<string, string>
  program: Program | undefined
}

const program = join(import.meta.dirname, '../support/bench-service.ts')

export class Fleet {
  readonly #members: Member[] = []
  readonly #logs: string
  /** How often members were killed. */
  kills = 0

  constructor(logs: string) {
    this.#logs = logs
  }

  /** Starts one more; resolves when it is ready. */
  async add(role: Role, env: Record<string, string>): Promise<void> {
    const name = `${role}-${this.#members.filter((each) => each.role === role).length + 1}`
    const port = role === 'api' && env.PORT === undefined ? { PORT: String(await freePort(undefined)) } : {}
    const member: Member = { name, role, env: { ...env, ...port, ROLES: role }, program: undefined }
    this.#members.push(member)
    await this.#start(member)
  }

  get size(): number {
    return this.#members.length
  }

  get urls(): string[] {
    return this.#members.flatMap(({ role, env }) => (role === 'api' ? [`http://127.0.0.1:${env.PORT}`] : []))
  }

  /** Process ids by name, of those that run now. */
  get pids(): Map<string, number> {
    return new Map(this.#members.flatMap(({ name, program }) => (program === undefined ? [] : [[name, program.pid]])))
  }

  /** SIGKILLs one, tells its name and starts it again; resolves when it is ready. */
  async crash(index: number, onKilled: (name: string) => void): Promise<void> {
    const member = this.#members[index % this.#members.length] as Member
    const { program } = member
    member.program = undefined
    await program?.kill()
    this.kills += 1
    onKilled(member.name)
    await this.#start(member)
  }

  async stop(): Promise<void> {
    await Promise.all(this.#members.map(({ program }) => program?.stop()))
  }

  async #start(member: Member): Promise<void> {
    member.program = await startProgram(program, member.env, join(this.#logs, `${member.name}.log`))
  }
}

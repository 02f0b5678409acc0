/** `tenant create`, `tenant list`, `key create`, `key list`, `key revoke` */
import { createHash, randomBytes } from 'node:crypto'
import { transaction } from '../runtime/database.ts'
import { newRunId } from '../runtime/run-id.ts'
import { recordAudit } from '../store/operator-audit.ts'
import {
  createKey,
  createTenant,
  type KeyOwner,
  keyIdOf,
  listKeys,
  listTenants,
  revokeKey,
  tenantExists,
} from '../store/tenants.ts'
import { type Command, CommandError, type Context, operatorFor, tenantOption, textOf, UsageError } from './command.ts'
import { table } from './table.ts'

const prefixes: Record<KeyOwner['role'], string> = { storefront: 'pk', backend: 'sk', admin: 'ak' }

export const tenantCreate: Command = {
  name: 'tenant create',
  about: 'add a tenant',
  options: {
    id: { type: 'string', value: 'ID', about: 'up to 40 letters, digits, - and _; it never changes', required: true },
    name: { type: 'string', value: 'TEXT', about: 'what its customers read in emails', required: true },
    'connected-account': { type: 'string', value: 'ACCT', about: "the provider's account that it charges on" },
  },
  async run(context) {
    const tenantId = textOf(context, 'id')
    if (!/^[A-Za-z0-9_-]{1,40}$/.test(tenantId)) throw new UsageError('--id: up to 40 letters, digits, - and _')
    const name = textOf(context, 'name')
    if (name.trim() === '') throw new UsageError('--name is empty')
    const { values } = context
    const account = values['connected-account']
    const connectedAccount = typeof account === 'string' ? account : null
    const created = await transaction(await context.database(), async (tx) => {
      if (!(await createTenant(tx, { tenantId, name, connectedAccount }))) return false
      const by = operatorFor(context, tenantId, newRunId())
      await recordAudit(tx, by, { action: 'create_tenant', target: { type: 'tenant', id: tenantId }, outcome: 'done' })
      return true
    })
    if (!created) throw new CommandError(`there is a tenant ${tenantId} already`)
    context.out.result({ id: tenantId, name, connected_account: connectedAccount }, [`tenant ${tenantId} is there`])
  },
}

export const tenantList: Command = {
  name: 'tenant list',
  about: 'list the tenants',
  options: {},
  async run(context) {
    const tenants = (await listTenants(await context.database())).map(({ tenantId, name, connectedAccount }) => ({
      id: tenantId,
      name,
      connected_account: connectedAccount,
    }))
    context.out.result(tenants, table(tenants))
  },
}

export const keyCreate: Command = {
  name: 'key create',
  about: 'make an API key; it is shown once and kept as a hash',
  options: {
    tenant: tenantOption,
    role: { type: 'string', value: 'ROLE', about: 'storefront, backend or admin', required: true },
    label: { type: 'string', value: 'TEXT', about: 'what it is called in lists and in the audit log', required: true },
  },
  async run(context) {
    const tenantId = textOf(context, 'tenant')
    const role = textOf(context, 'role')
    const label = textOf(context, 'label')
    if (!isRole(role)) throw new UsageError('--role: storefront, backend or admin')
    if (label.trim() === '' || label.length > 100) throw new UsageError('--label: 1 to 100 characters')
    const db = await context.database()
    await needTenant(db, tenantId)
    const key = `${prefixes[role]}_${randomBytes(32).toString('base64url')}`
    const keyHash = createHash('sha256').update(key).digest()
    const id = keyIdOf(keyHash)
    await transaction(db, async (tx) => {
      await createKey(tx, { keyHash, tenantId, role, label })
      const by = operatorFor(context, tenantId, newRunId())
      await recordAudit(tx, by, { action: 'create_key', target: { type: 'api_key', id }, outcome: 'done' })
    })
    context.out.result({ id, key, tenant: tenantId, role, label }, [
      key,
      `This is the only time that it is shown. Its id is ${id}.`,
    ])
  },
}

export const keyList: Command = {
  name: 'key list',
  about: "list a tenant's API keys",
  options: { tenant: tenantOption },
  async run(context) {
    const tenantId = textOf(context, 'tenant')
    const db = await context.database()
    await needTenant(db, tenantId)
    const keys = (await listKeys(db, tenantId)).map(({ keyId, role, label, createdAt, revokedAt }) => ({
      id: keyId,
      role,
      label,
      created_at: createdAt.toISOString(),
      revoked_at: revokedAt?.toISOString() ?? null,
    }))
    context.out.result(keys, table(keys))
  },
}

export const keyRevoke: Command = {
  name: 'key revoke',
  about: 'make an API key useless, within 10 seconds',
  options: { tenant: tenantOption },
  argument: { name: 'KEY_ID', about: 'as `key list` shows it' },
  async run(context) {
    const tenantId = textOf(context, 'tenant')
    const id = context.argument
    const revoked = await transaction(await context.database(), async (tx) => {
      const revoked = await revokeKey(tx, tenantId, id)
      if (revoked === null) return null
      const by = operatorFor(context, tenantId, newRunId())
      await recordAudit(tx, by, { action: 'revoke_key', target: { type: 'api_key', id }, outcome: 'done' })
      return revoked
    })
    if (revoked === null) throw new CommandError(`the tenant ${tenantId} has no key ${id}; see key list`)
    context.out.result({ id, revoked_at: revoked.revokedAt.toISOString() }, [`key ${id} is revoked`])
  },
}

function isRole(role: string): role is KeyOwner['role'] {
  return Object.hasOwn(prefixes, role)
}

export async function needTenant(db: Awaited<ReturnType<Context['database']>>, tenantId: string): Promise<void> {
  if (!(await tenantExists(db, tenantId))) throw new CommandError(`there is no tenant ${tenantId}; see tenant list`)
}

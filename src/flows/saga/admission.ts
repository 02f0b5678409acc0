/** How many attempts may be under way at once, in all and for one caller: the surplus is told at once, before it costs. */
import { clientNetwork } from '../../domain/client-network.ts'
import type { Problem } from '../../domain/problem.ts'
import { overloaded } from './refusals.ts'

interface AdmissionLimits {
  all: number
  /** Below `all`, so that no tenant's crowd keeps the others out. */
  perTenant: number
  /** Of the client; 0: as many as come. */
  perAddress: number
}

// Made once: under a storm, tracing each to its line of code would cost as much as all else about it.
const tooMany = overloaded('Too many checkouts are under way.')
const tooManyOfTenant = overloaded('Too many checkouts of this shop are under way.')
const tooManyOfAddress = overloaded('Too many checkouts are under way from this address.')

export class Admission {
  readonly #limits: AdmissionLimits
  #all = 0
  readonly #byTenant = new Counts()
  readonly #byAddress = new Counts()

  constructor(limits: AdmissionLimits) {
    this.#limits = limits
  }

  /** Why there is no room for one more attempt of the tenant; undefined where there is. */
  refusal(tenantId: string): Problem | undefined {
    const { all, perTenant } = this.#limits
    if (this.#all >= all) return tooMany
    return this.#byTenant.of(tenantId) >= perTenant ? tooManyOfTenant : undefined
  }

  /** Runs an attempt, or throws `overloaded`. `address` is that of a storefront's customer; null where a tenant's own
   * machines call, which come from few addresses. */
  async admit<Result>(tenantId: string, address: string | null, run: () => Promise<Result>): Promise<Result> {
    const { perAddress } = this.#limits
    const refusal = this.refusal(tenantId)
    if (refusal !== undefined) throw refusal
    // Parsed only where it counts.
    const limited = perAddress > 0 && address !== null ? clientNetwork(address) : null
    if (limited !== null && this.#byAddress.of(limited) >= perAddress) throw tooManyOfAddress
    this.#all += 1
    this.#byTenant.add(tenantId, 1)
    if (limited !== null) this.#byAddress.add(limited, 1)
    try {
      return await run()
    } finally {
      this.#all -= 1
      this.#byTenant.add(tenantId, -1)
      if (limited !== null) this.#byAddress.add(limited, -1)
    }
  }
}

/** Numbers by name; those that are 0 take no memory. */
class Counts {
  readonly #counts = new Map<string, number>()

  of(name: string): number {
    return this.#counts.get(name) ?? 0
  }

  add(name: string, change: number): void {
    const now = this.of(name) + change
    if (now === 0) this.#counts.delete(name)
    else this.#counts.set(name, now)
  }
}

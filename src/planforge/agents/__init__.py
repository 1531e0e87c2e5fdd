"""Who does the work: adapters, profiles and private homes of agents, roles and tiers, what it all costs."""
